"""Serdes: keys and values as columns of their types, and as a topic's bytes."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)

from tidelog.log.base.errors import InvalidOptionError
from tidelog.spark.registry_frames import Registry, from_registry, to_registry
from tidelog.spark.streams.windows import micros

_LONG_DIGITS = 16
_INT_DIGITS = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Serde(ABC):
    """How a topic's bytes become a key or a value, and back."""

    @abstractmethod
    def decode(self, rows: DataFrame, column: str) -> DataFrame:
        """The rows with the column's bytes as its type."""

    @abstractmethod
    def encode(self, rows: DataFrame, column: str, topic: str) -> DataFrame:
        """The rows with the column as the bytes that `topic` takes."""

    def dumps(self, value: Any) -> bytes | None:  # noqa: ARG002
        """A value's bytes, for the test driver."""
        raise InvalidOptionError(f"{self} has no bytes of single values: give the test driver bytes, by serdes.BYTES.")

    def loads(self, data: bytes | None) -> Any:  # noqa: ARG002
        """The value of bytes, for the test driver."""
        raise InvalidOptionError(f"{self} reads no single values: read the topic's bytes, by serdes.BYTES.")


@dataclass(frozen=True)
class _Bytes(Serde):
    """Bytes as they are (Kafka's ByteArraySerializer)."""

    def decode(self, rows: DataFrame, column: str) -> DataFrame:  # noqa: ARG002
        return rows

    def encode(self, rows: DataFrame, column: str, topic: str) -> DataFrame:  # noqa: ARG002
        return rows.withColumn(column, F.col(column).cast("binary"))

    def dumps(self, value: Any) -> bytes | None:
        return value.encode() if isinstance(value, str) else value

    def loads(self, data: bytes | None) -> Any:
        return data


@dataclass(frozen=True)
class _Text(Serde):
    """Text as UTF-8 (Kafka's StringSerializer); other types as SQL writes them."""

    def decode(self, rows: DataFrame, column: str) -> DataFrame:
        return rows.withColumn(column, F.col(column).cast("string"))

    def encode(self, rows: DataFrame, column: str, topic: str) -> DataFrame:  # noqa: ARG002
        if isinstance(rows.schema[column].dataType, StructType):
            raise InvalidOptionError(f"The {column} is a struct, and serdes.STRING takes none: give serdes.json().")
        return rows.withColumn(column, F.col(column).cast("string").cast("binary"))

    def dumps(self, value: Any) -> bytes | None:
        return None if value is None else str(value).encode()

    def loads(self, data: bytes | None) -> Any:
        return None if data is None else data.decode()


@dataclass(frozen=True)
class _Whole(Serde):
    """Whole numbers, big-endian and signed (Kafka's LongSerializer and IntegerSerializer)."""

    digits: int

    def decode(self, rows: DataFrame, column: str) -> DataFrame:
        kind, taken = ("bigint", F.col(column)) if self.digits == _LONG_DIGITS else ("int", F.col(column))
        text = F.hex(taken)
        fits = F.length(text) == self.digits
        wrong = F.raise_error(F.concat(F.lit(f"A {column} has not the bytes of a {kind}: 0x"), text)).cast("string")
        # conv reads the two's complement of 64 bits.
        sign = F.when(text >= F.lit("8"), F.lpad(text, _LONG_DIGITS, "F")).otherwise(text)
        number = F.conv(F.when(fits, sign).otherwise(wrong), 16, -10).cast(kind)
        return rows.withColumn(column, F.when(F.col(column).isNotNull(), number))

    def encode(self, rows: DataFrame, column: str, topic: str) -> DataFrame:  # noqa: ARG002
        kind = "bigint" if self.digits == _LONG_DIGITS else "int"
        text = F.hex(F.col(column).cast(kind).cast("bigint"))
        return rows.withColumn(column, F.unhex(F.right(F.lpad(text, _LONG_DIGITS, "0"), F.lit(self.digits))))

    def dumps(self, value: Any) -> bytes | None:
        return None if value is None else int(value).to_bytes(self.digits // 2, "big", signed=True)

    def loads(self, data: bytes | None) -> Any:
        return None if data is None else int.from_bytes(data, "big", signed=True)


@dataclass(frozen=True)
class _Json(Serde):
    """JSON; `schema` is the type of what is read, in Spark's DDL. With `fail_fast`, what is none fails the query."""

    schema: str | DataType | None = None
    fail_fast: bool = True

    def decode(self, rows: DataFrame, column: str) -> DataFrame:
        if self.schema is None:
            raise InvalidOptionError(
                f"serdes.json() has no schema to read the {column} by: give it one, as serdes.json('page string')."
            )
        options = {"mode": "FAILFAST" if self.fail_fast else "PERMISSIVE"}
        text = F.col(column).cast("string")
        made = F.from_json(F.concat(F.lit('{"v":'), text, F.lit("}")), _wrapped(self.schema), options)["v"]
        return rows.withColumn(column, F.when(F.col(column).isNotNull(), made))

    def encode(self, rows: DataFrame, column: str, topic: str) -> DataFrame:  # noqa: ARG002
        given = F.col(column)
        # A value that is no struct has no JSON of its own in Spark: it is written as a field, and the field cut out.
        whole = F.to_json(F.struct(given.alias("v")), {"ignoreNullFields": "false"})
        text = F.substr(whole, F.lit(6), F.length(whole) - 6)
        return rows.withColumn(column, F.when(given.isNotNull(), text.cast("binary")))

    def dumps(self, value: Any) -> bytes | None:
        return None if value is None else orjson.dumps(value, default=_as_json)

    def loads(self, data: bytes | None) -> Any:
        return None if data is None else orjson.loads(data)


@dataclass(frozen=True)
class _Registered(Serde):
    """Bytes by a registry's schemas, each behind its schema's id."""

    registry: Registry
    subject: str | None
    schema: str | None
    schema_type: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def decode(self, rows: DataFrame, column: str) -> DataFrame:
        return from_registry(
            rows,
            column,
            registry=self.registry,
            subject=self.subject,
            schema=self.schema,
            schema_type=self.schema_type,
            mode="FAILFAST",
        )

    def encode(self, rows: DataFrame, column: str, topic: str) -> DataFrame:
        named: dict[str, Any] = {"topic": topic} if self.subject is None else {"subject": self.subject}
        return to_registry(
            rows, column, registry=self.registry, schema=self.schema, schema_type=self.schema_type, **named
        )


@dataclass(frozen=True)
class _Typed(Serde):
    """The columns of a typed topic: the value is the struct `columns`, which the topic itself checks and stores."""

    def decode(self, rows: DataFrame, column: str) -> DataFrame:
        return rows.withColumn(column, F.col("columns")).drop("columns")

    def encode(self, rows: DataFrame, column: str, topic: str) -> DataFrame:  # noqa: ARG002
        return rows.withColumnRenamed(column, "columns")


@dataclass(frozen=True)
class _Windowed(Serde):
    """A window's key as Kafka Streams writes it: the key's bytes, then the window's start, as ms in 8 bytes.

    Of a session its end and its start (Kafka's TimeWindowedSerializer and SessionWindowedSerializer). Spark writes
    such keys; the test driver reads them as {"key", "window": {"start", "end"}}.
    """

    inner: Serde
    size: timedelta | None

    def decode(self, rows: DataFrame, column: str) -> DataFrame:  # noqa: ARG002
        raise InvalidOptionError(f"The {column} of a window is only written: read its bytes, by serdes.BYTES.")

    def encode(self, rows: DataFrame, column: str, topic: str) -> DataFrame:
        made = self.inner.encode(rows.withColumn("inner_key", F.col(f"{column}.key")), "inner_key", topic)
        bounds = ["start"] if self.size is not None else ["end", "start"]
        parts = [F.unhex(_hex_ms(F.col(f"{column}.window.{one}"))) for one in bounds]
        return made.withColumn(column, F.concat(F.col("inner_key"), *parts)).drop("inner_key")

    def loads(self, data: bytes | None) -> Any:
        if data is None:
            return None
        if self.size is None:
            inner, end, start = data[:-16], _at(data[-16:-8]), _at(data[-8:])
        else:
            inner, start = data[:-8], _at(data[-8:])
            end = start + self.size
        return {"key": self.inner.loads(inner), "window": {"start": start, "end": end}}


BYTES: Serde = _Bytes()
STRING: Serde = _Text()
LONG: Serde = _Whole(_LONG_DIGITS)
INTEGER: Serde = _Whole(_INT_DIGITS)
TYPED: Serde = _Typed()


def json(schema: str | DataType | None = None, *, fail_fast: bool = True) -> Serde:
    """JSON. `schema`: what is read, as "page string, seconds int", or "long"; what is only written needs none.

    A value that is no JSON of that type fails the query (Kafka's LogAndFailExceptionHandler); with `fail_fast=False`
    its fields are null.
    """
    return _Json(schema, fail_fast)


def avro(
    registry: Registry, subject: str | None = None, *, schema: str | None = None, schema_type: str = "AVRO"
) -> Serde:
    """Avro by a registry's schemas, as `tidelog.spark.from_registry` and `to_registry`; JSON and PROTOBUF too.

    Read: by the newest schema of `subject`, or by the text `schema`. Written: by the same; without `subject` by that
    of the topic.
    """
    return _Registered(registry, subject, schema, schema_type)


def time_windowed(inner: Serde, size: timedelta) -> Serde:
    """Keys of time windows, as Kafka Streams writes them."""
    micros(size)
    return _Windowed(inner, size)


def session_windowed(inner: Serde) -> Serde:
    """Keys of sessions, as Kafka Streams writes them."""
    return _Windowed(inner, None)


def serde_of(kind: DataType) -> Serde:
    """The serde of a type where none is given: text, bytes, whole numbers as Kafka writes them, all else as JSON."""
    if isinstance(kind, StringType):
        return STRING
    if isinstance(kind, BinaryType):
        return BYTES
    if isinstance(kind, LongType):
        return LONG
    if isinstance(kind, IntegerType):
        return INTEGER
    return _Json(kind)


def _wrapped(schema: str | DataType) -> str | StructType:
    if isinstance(schema, DataType):
        return StructType().add("v", schema)
    text = schema.strip()
    # "page string" lists the fields of a struct, "long" and "array<long>" are types.
    listed = " " in text.split("<", 1)[0] and not text.lower().startswith(("struct<", "array<", "map<"))
    return f"v struct<{text}>" if listed else f"v {text}"


def _hex_ms(time: Column) -> Column:
    return F.lpad(F.hex(F.unix_millis(time)), _LONG_DIGITS, "0")


def _at(data: bytes) -> datetime:
    return _EPOCH + timedelta(milliseconds=int.from_bytes(data, "big", signed=True))


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} has no JSON")
