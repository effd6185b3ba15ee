"""The converters by their names: a Java class's full name, its last part, or a short one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.values import FLAG, TEXT, ConnectConfigError, as_written
from tidelog.connect.converters.avro_converter import AVRO_KEYS, avro_converter
from tidelog.connect.converters.base import Converter
from tidelog.connect.converters.json_converter import JsonConverter
from tidelog.connect.converters.json_schema_converter import JSON_SCHEMA_KEYS, json_schema_converter
from tidelog.connect.converters.plain import ByteArrayConverter, NumberConverter, SimpleHeaderConverter, StringConverter
from tidelog.connect.converters.protobuf_converter import PROTOBUF_KEYS, protobuf_converter
from tidelog.connect.data.schema import BOOLEAN, FLOAT32, FLOAT64, INT16, INT32, INT64, ConnectSchema
from tidelog.log.config.key_type import int_of

_KAFKA: Final = "org.apache.kafka.connect."
# Configuration, whether it is of keys, and the lake (for registries that are in it) -> the converter.
Make = Callable[[Mapping[str, str], bool, Any], Converter]


@dataclass(frozen=True, slots=True)
class ConverterPlugin:
    """A converter: its name in Java first, what it may be called otherwise, its keys, and how it is made.

    `headers_only`: it converts headers alone; others convert keys, values and headers.
    """

    names: tuple[str, ...]
    keys: ConfigDef
    make: Make
    headers_only: bool = False

    @property
    def kind(self) -> str:
        """What the REST API calls it."""
        return "header_converter" if self.headers_only else "converter"


def _json(config: Mapping[str, str], is_key: bool, lake: Any) -> Converter:  # noqa: ARG001
    given = _JSON_KEYS.parse(config)
    return JsonConverter(
        schemas=given["schemas.enable"],
        numeric=given["decimal.format"].upper() == "NUMERIC",
        default=given["replace.null.with.default"],
    )


def _string(config: Mapping[str, str], is_key: bool, lake: Any) -> Converter:  # noqa: ARG001
    encoding = _STRING_KEYS.parse(config)["converter.encoding"]
    try:
        "".encode(encoding)
    except LookupError:
        raise ConnectConfigError(
            f"Invalid value {encoding} for configuration converter.encoding: no encoding"
        ) from None
    return StringConverter(encoding)


def _numbers(name: str, kind: ConnectSchema) -> ConverterPlugin:
    return ConverterPlugin((f"{_KAFKA}converters.{name}",), ConfigDef(), lambda *_: NumberConverter(kind))


_JSON_KEYS: Final = (
    ConfigDef()
    .define("schemas.enable", FLAG, True, Importance.HIGH, "Whether the schema goes with each value.")
    .define(
        "decimal.format", as_written("BASE64", "NUMERIC"), "BASE64", Importance.LOW,
        "How decimals are written: BASE64 (their digits as bytes) or NUMERIC.",
    )
    .define("replace.null.with.default", FLAG, True, Importance.LOW, "A null is its schema's default.")
    .define("schemas.cache.size", int_of(), 1000, Importance.HIGH, "How many schemas are kept; 1000 are.")
)  # fmt: skip
_STRING_KEYS: Final = ConfigDef().define("converter.encoding", TEXT, "UTF-8", Importance.HIGH, "The encoding of texts.")
CONVERTERS: Final = (
    ConverterPlugin((f"{_KAFKA}json.JsonConverter", "json"), _JSON_KEYS, _json),
    ConverterPlugin((f"{_KAFKA}storage.StringConverter", "string"), _STRING_KEYS, _string),
    ConverterPlugin((f"{_KAFKA}converters.ByteArrayConverter", "bytes"), ConfigDef(), lambda *_: ByteArrayConverter()),
    ConverterPlugin(("io.confluent.connect.avro.AvroConverter", "avro"), AVRO_KEYS, avro_converter),
    ConverterPlugin(
        ("io.confluent.connect.json.JsonSchemaConverter", "json-schema"), JSON_SCHEMA_KEYS, json_schema_converter
    ),
    ConverterPlugin(("io.confluent.connect.protobuf.ProtobufConverter", "protobuf"), PROTOBUF_KEYS, protobuf_converter),
    _numbers("LongConverter", INT64),
    _numbers("IntegerConverter", INT32),
    _numbers("ShortConverter", INT16),
    _numbers("DoubleConverter", FLOAT64),
    _numbers("FloatConverter", FLOAT32),
    _numbers("BooleanConverter", BOOLEAN),
    ConverterPlugin(
        (f"{_KAFKA}storage.SimpleHeaderConverter",), ConfigDef(), lambda *_: SimpleHeaderConverter(), headers_only=True
    ),
)


def converter_plugin(name: str) -> ConverterPlugin:
    """The converter of a name. Raises `ConnectConfigError`."""
    for plugin in CONVERTERS:
        if name in plugin.names or name == plugin.names[0].rpartition(".")[2]:
            return plugin
    known = ", ".join(plugin.names[0].rpartition(".")[2] for plugin in CONVERTERS)
    raise ConnectConfigError(f"Class {name[:200]} could not be found: no converter is called so. There are {known}.")
