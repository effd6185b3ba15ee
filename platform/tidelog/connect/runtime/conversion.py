"""A connector's converters and transformations: source records become bytes, bytes become sink records."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from tidelog.connect.converters.base import Converter, PackedConverter, SchemaAndValue
from tidelog.connect.converters.table import converter_plugin
from tidelog.connect.data.packed import LazyRecord, Parts, StructLayout
from tidelog.connect.data.records import ConnectHeader, SinkRecord, SourceRecord
from tidelog.connect.runtime.settings import DEFAULT_CONVERTER, DEFAULT_HEADER_CONVERTER
from tidelog.connect.runtime.tolerance import ErrorStage, ToleranceOperator
from tidelog.connect.transforms.base import R
from tidelog.connect.transforms.chain import ChainedTransform, chain_of

T = TypeVar("T")


Headers = Sequence[tuple[str, bytes | None]]


class RawRecord(NamedTuple):
    """A record as a topic has it. `partition`: None leaves it to the key."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None
    headers: Headers = ()
    offset: int = -1


class Conversion:
    """The converters and transformations of one task. Raises `ConnectConfigError` for a configuration that has none.

    `lake`: for converters whose schemas are in it. `worker`: the worker's properties, whose converters are the default.
    """

    def __init__(
        self, config: Mapping[str, str], lake: Any, operator: ToleranceOperator, worker: Mapping[str, str] | None = None
    ) -> None:
        self._operator = operator
        self._chain: tuple[ChainedTransform, ...] = chain_of(config)
        self._key = _converter(config, "key.converter", lake, worker or {})
        self._value = _converter(config, "value.converter", lake, worker or {})
        self._headers = _converter(config, "header.converter", lake, worker or {})
        self._packed_key, self._packed_value = _from_packed(self._key), _from_packed(self._value)

    def to_raw(self, record: SourceRecord) -> RawRecord | None:
        """The bytes of a record, None where a transformation drops it. Raises `RecordFailedError`."""
        if isinstance(record, LazyRecord):
            try:
                if not self._chain:
                    return self._packed_to_raw(record)
            except Exception:  # noqa: S110 it fails again below, where the operator hears of it
                pass
            record = record.but()
        changed = self._transformed(record)
        if changed is None:
            return None
        topic, run = changed.topic, self._from_connect
        return RawRecord(
            topic,
            changed.partition,
            run(ErrorStage.KEY_CONVERTER, self._key, topic, changed.key_schema, changed.key),
            run(ErrorStage.VALUE_CONVERTER, self._value, topic, changed.value_schema, changed.value),
            changed.timestamp_ms,
            self._headers_of(changed),
        )

    def _packed_to_raw(self, record: LazyRecord) -> RawRecord:
        """The bytes of a record that no transformation sees; only a converter that needs its structs has them made."""
        topic, key, value, _ = record.layout
        parts = record.parts
        return RawRecord(
            topic,
            None,
            None if key is None else self._packed_key(topic, key, parts),
            self._packed_value(topic, value, parts),
            None,
            self._headers_of(record) if record.headers else (),
        )

    def _headers_of(self, record: SourceRecord) -> Headers:
        run, topic = self._from_connect, record.topic
        return tuple(
            (one.key, run(ErrorStage.HEADER_CONVERTER, self._headers, topic, one.schema, one.value))
            for one in record.headers
        )

    def to_sink(self, raw: RawRecord) -> SinkRecord | None:
        """The record of a topic's bytes, None where a transformation drops it. Raises `RecordFailedError`."""
        run, partition = self._to_connect, raw.partition or 0
        key_schema, key = run(ErrorStage.KEY_CONVERTER, self._key, raw.topic, raw.key)
        value_schema, value = run(ErrorStage.VALUE_CONVERTER, self._value, raw.topic, raw.value)
        headers = []
        for name, data in raw.headers:
            schema, said = run(ErrorStage.HEADER_CONVERTER, self._headers, raw.topic, data)
            headers.append(ConnectHeader(name, said, schema))
        record = SinkRecord(
            topic=raw.topic, partition=partition, offset=raw.offset, key=key, key_schema=key_schema, value=value,
            value_schema=value_schema, timestamp_ms=raw.timestamp_ms, headers=tuple(headers),
            original_topic=raw.topic, original_partition=partition,
        )  # fmt: skip
        return self._transformed(record)

    def close(self) -> None:
        """Release what the converters hold."""
        for converter in (self._key, self._value, self._headers):
            converter.close()

    def _transformed(self, record: R) -> R | None:
        output: R | None = record
        for transform in self._chain:
            if output is None:
                return None
            output = self._operator.run(ErrorStage.TRANSFORMATION, transform.class_name, _applied(transform, output))
        return output

    def _from_connect(
        self, stage: ErrorStage, converter: Converter, topic: str, schema: Any, value: Any
    ) -> bytes | None:
        """The bytes; the operator, which may try again, hears of it only when it fails."""
        try:
            return converter.from_connect(topic, schema, value)
        except Exception as error:
            return self._operator.recover(
                stage, _name(converter), lambda: converter.from_connect(topic, schema, value), error
            )

    def _to_connect(self, stage: ErrorStage, converter: Converter, topic: str, data: bytes | None) -> SchemaAndValue:
        return self._operator.run(stage, _name(converter), lambda: converter.to_connect(topic, data))


def _from_packed(converter: Converter) -> Callable[[str, StructLayout, Parts], bytes | None]:
    """What gives the bytes of a packed struct."""
    if isinstance(converter, PackedConverter):
        return converter.from_packed
    return lambda topic, layout, parts: converter.from_connect(topic, layout.schema, layout.unpacked(parts))


def _applied(one: ChainedTransform, record: R) -> Callable[[], R | None]:
    return lambda: one.apply(record)


def _name(converter: Converter) -> str:
    return type(converter).__name__


def _converter(config: Mapping[str, str], place: str, lake: Any, worker: Mapping[str, str]) -> Converter:
    """The connector's converter with its keys below `place`, else the worker's, else Connect's default."""
    default = DEFAULT_HEADER_CONVERTER if place == "header.converter" else DEFAULT_CONVERTER
    given = config if config.get(place) else worker
    plugin = converter_plugin(given.get(place) or default)
    prefix = f"{place}."
    below = {key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)}
    return plugin.make(below, place == "key.converter", lake)
