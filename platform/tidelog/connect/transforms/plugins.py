"""Transformations and predicates by Connect's names: their configuration keys, and what makes each of its values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.values import (
    FILLED,
    FLAG,
    TEXT,
    TEXTS,
    ConnectConfigError,
    as_written,
    invalid_value,
    read_as,
)
from tidelog.connect.transforms.base import V1, V2, RecordSide, Transformation, path_steps
from tidelog.connect.transforms.date_patterns import DatePattern
from tidelog.connect.transforms.fields import ExtractField, Flatten, HoistField, InsertField, ReplaceField, ValueToKey
from tidelog.connect.transforms.headers import DropHeaders, HeaderFrom, InsertHeader, parsed_literal
from tidelog.connect.transforms.new_record_state import (
    MODES,
    OLDER_MODES,
    DeleteMode,
    EnvelopeField,
    NewRecordState,
)
from tidelog.connect.transforms.routing import (
    Filter,
    HasHeaderKey,
    RecordIsTombstone,
    RecordPredicate,
    RegexRouter,
    SetSchemaMetadata,
    TimestampRouter,
    TopicNameMatches,
    java_pattern,
    java_replacement,
)
from tidelog.connect.transforms.timestamps import PRECISIONS, TARGETS, TimestampConverter
from tidelog.connect.transforms.values import OUTPUTS, Cast, MaskField
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.typed_values import Checked, UnfitValueError, names
from tidelog.log.config.key_type import int_of

_PACKAGE: Final = "org.apache.kafka.connect.transforms."
_DEBEZIUM: Final = "io.debezium.transforms."
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_REPLACE_NULL: Final = "replace.null.with.default"

Values = Mapping[str, Any]


@dataclass(frozen=True)
class TransformPlugin:
    """A kind of transformation.

    `names`: what `transforms.<alias>.type` may say, Java's class first, one set for each side where it has sides.
    `make`: one of a side and parsed values; raises `ConnectConfigError` for values that contradict each other.
    """

    name: str
    documentation: str
    config_def: ConfigDef
    make: Callable[[RecordSide, Values], Transformation]
    sided: bool = True
    package: str = _PACKAGE

    @property
    def classes(self) -> Mapping[str, RecordSide]:
        """The sides by the class names that mean them."""
        sides = RecordSide if self.sided else (RecordSide.VALUE,)
        return {self.name + (f"${side.value}" if self.sided else ""): side for side in sides}


@dataclass(frozen=True)
class PredicatePlugin:
    """A kind of predicate."""

    name: str
    documentation: str
    config_def: ConfigDef
    make: Callable[[Values], RecordPredicate]


def _check_filled(texts: Sequence[str]) -> None:
    """A list with at least one entry (Kafka's `NonEmptyListValidator`)."""
    if not texts:
        raise ValueError("Empty list")


def _renames(mappings: Sequence[str]) -> dict[str, str]:
    parts = [mapping.split(":") for mapping in mappings]
    for mapping, part in zip(mappings, parts, strict=True):
        if len(part) != 2 or not all(part):
            raise invalid_value("renames", ",".join(mappings), f"Invalid rename mapping: {mapping}")
    return {old: new for old, new in parts}  # noqa: C416


def _casts(spec: Sequence[str]) -> dict[str | None, Any]:
    """Types by fields' names, None for a whole side."""
    if not spec:
        raise ConnectConfigError("Must specify at least one field to cast.")
    casts: dict[str | None, Any] = {}
    for mapping in spec:
        name, _, kind = mapping.rpartition(":")
        if ":" in name:
            raise invalid_value("spec", ",".join(spec), f"Invalid cast mapping: {mapping}")
        if kind.strip().lower() not in OUTPUTS:
            raise ConnectConfigError(
                f"Invalid type found in casting spec: {kind.strip()}. Valid: {', '.join(OUTPUTS)}."
            )
        casts[name.strip() if ":" in mapping else None] = OUTPUTS[kind.strip().lower()]
    if None in casts and len(spec) > 1:
        raise ConnectConfigError(
            "Cast transformations that specify a type to cast the entire value to may only specify a single cast in "
            "their spec"
        )
    return casts


_INSERTED: Final = ("topic", "partition", "offset", "timestamp", "static")


def _insert_field(side: RecordSide, values: Values) -> Transformation:
    fields = {kind: values[f"{kind}.field"] for kind in _INSERTED if values[f"{kind}.field"] is not None}
    if not fields:
        raise ConnectConfigError(
            f"No field insertion configured: give one of {', '.join(k + '.field' for k in _INSERTED)}."
        )
    if "static" in fields and values["static.value"] is None:
        raise invalid_value("static.value", None, f"No value specified for static field: {fields['static']}")
    return InsertField(side, fields, values["static.value"], replace_null=values[_REPLACE_NULL])


def _cast(side: RecordSide, values: Values) -> Transformation:
    casts = _casts(values["spec"])
    whole = casts.pop(None, None)
    return Cast(side, {str(name): kind for name, kind in casts.items()}, whole, replace_null=values[_REPLACE_NULL])


def _header_from(side: RecordSide, values: Values) -> Transformation:
    fields, headers = values["fields"], values["headers"]
    if len(fields) != len(headers):
        raise ConnectConfigError("'fields' config must have the same number of elements as 'headers' config.")
    move = values["operation"] == "move"
    return HeaderFrom(side, fields, headers, move=move, replace_null=values[_REPLACE_NULL])


def _envelope_fields(texts: Sequence[str], prefix: str | None) -> list[EnvelopeField]:
    return [EnvelopeField.parsed(one, prefix or "") for one in texts]


def _check_envelope_fields(texts: Sequence[str]) -> None:
    try:
        _envelope_fields(texts, "")
    except ValueError as error:
        raise UnfitValueError(",".join(texts), str(error)) from None


def _new_record_state(_: RecordSide, values: Values) -> Transformation:
    """The older two keys count where the newer one is not given, as in Debezium 2."""
    said, older, drops = (
        values[key] for key in ("delete.tombstone.handling.mode", "delete.handling.mode", "drop.tombstones")
    )
    deletes = DeleteMode.TOMBSTONE
    if said:
        if older or drops is not None:
            raise ConnectConfigError(
                "delete.tombstone.handling.mode says what drop.tombstones and delete.handling.mode say, too. Leave"
                " those out."
            )
        deletes = DeleteMode(said.lower())
    elif older or drops is not None:
        deletes = OLDER_MODES[(older or "drop").lower(), drops is not False]
    return NewRecordState(
        deletes=deletes,
        fields=_envelope_fields(values["add.fields"], values["add.fields.prefix"]),
        headers=_envelope_fields(values["add.headers"], values["add.headers.prefix"]),
        route_by=values["route.by.field"] or None,
        drop_header=values["drop.fields.header.name"] or None,
        drop_from_key=values["drop.fields.from.key"],
        drop_compatibly=values["drop.fields.keep.schema.compatible"],
        replace_null=values[_REPLACE_NULL],
    )


def _timestamp_converter(side: RecordSide, values: Values) -> Transformation:
    text = values["format"] or ""
    if values["target.type"] == "string" and not text.strip():
        raise ConnectConfigError(
            "TimestampConverter requires format option to be specified when using string timestamps"
        )
    return TimestampConverter(
        side,
        values["field"],
        values["target.type"],
        DatePattern(text) if text.strip() else None,
        values["unix.precision"],
        replace_null=values[_REPLACE_NULL],
    )


def _regex_router(_: RecordSide, values: Values) -> Transformation:
    pattern = java_pattern(values["regex"])
    try:
        return RegexRouter(pattern, java_replacement(values["replacement"], pattern))
    except ValueError as error:
        raise invalid_value("replacement", values["replacement"], str(error)) from None


def _set_schema_metadata(side: RecordSide, values: Values) -> Transformation:
    name, version = values["schema.name"], values["schema.version"]
    if name is None and version is None:
        raise ConnectConfigError("Neither schema name nor version configured")
    return SetSchemaMetadata(side, name, version, replace_null=values[_REPLACE_NULL])


def _extract_field(side: RecordSide, values: Values) -> Transformation:
    path = values["field"]
    try:
        steps = path_steps(path, values["field.syntax.version"])
    except ValueError as error:
        raise ConnectConfigError(str(error)) from None
    return ExtractField(side, path, steps, replace_null=values[_REPLACE_NULL])


_NAMES: Final = Checked(TEXTS, _check_filled)
_FIELDS: Final = Checked(TEXTS, _check_envelope_fields)
_NULLS: Final = (
    _REPLACE_NULL, FLAG, True, _MEDIUM,
    "Whether a field that is null becomes the default of its schema, where it has one.",
)  # fmt: skip
_OPTIONAL: Final = "Suffix with ! to make this a required field, or ? to keep it optional (the default)."
_CLASSES: Final = (
    TransformPlugin(
        "Cast",
        "Cast fields, or the whole key or value, to a type. Binary values can be cast to string (base64) only.",
        ConfigDef()
        .define("spec", Checked(TEXTS, _casts), REQUIRED, _HIGH,
                "field:type pairs, or one type for the whole value: int8, int16, int32, int64, float32, float64, "
                "boolean, string.")
        .define(*_NULLS),
        _cast,
    ),
    TransformPlugin(
        "DropHeaders",
        "Remove headers by their names.",
        ConfigDef().define("headers", _NAMES, REQUIRED, _HIGH, "The names of headers to remove."),
        lambda _, values: DropHeaders(values["headers"]),
        sided=False,
    ),
    TransformPlugin(
        "ExtractField",
        "Replace the key or value by one of its fields; null stays null.",
        ConfigDef()
        .define("field", TEXT, REQUIRED, _MEDIUM, "The field's name, or with field.syntax.version=V2 its path.")
        .define("field.syntax.version", as_written(V1, V2), V1, _HIGH,
                "V1: a name. V2: a path, with steps between dots, and backticks around steps that have dots.")
        .define(*_NULLS),
        _extract_field,
    ),
    TransformPlugin("Filter", "Drop all records; a predicate says which it gets.", ConfigDef(),
                    lambda _, __: Filter(), sided=False),
    TransformPlugin(
        "Flatten",
        "Make one level of nested structs or maps; lists stay as they are.",
        ConfigDef().define("delimiter", TEXT, ".", _MEDIUM, "What joins the names of the levels."),
        lambda side, values: Flatten(side, values["delimiter"]),
    ),
    TransformPlugin(
        "ExtractNewRecordState",
        "Replace Debezium's envelope of a change by the row after it.",
        ConfigDef()
        .define("delete.tombstone.handling.mode", as_written("", *MODES), "", _MEDIUM,
                f"What becomes of deletes and tombstones: {', '.join(MODES)}; tombstone unless given.")
        .define("drop.tombstones", FLAG, None, _LOW, "Older: whether tombstones are dropped, true unless given.")
        .define("delete.handling.mode", as_written("", "drop", "rewrite", "none"), "", _LOW,
                "Older: drop, rewrite or none, drop unless given.")
        .define("add.fields", _FIELDS, [], _LOW, "Fields of the envelope to add to the row, also as block.field:name.")
        .define("add.fields.prefix", TEXT, "__", _LOW, "What their names begin with.")
        .define("add.headers", _FIELDS, [], _LOW, "Fields of the envelope to add as headers.")
        .define("add.headers.prefix", TEXT, "__", _LOW, "What the headers' names begin with.")
        .define("route.by.field", TEXT, None, _LOW, "The row's field that names the topic.")
        .define("drop.fields.header.name", TEXT, None, _LOW, "The header that lists fields to leave out of the row.")
        .define("drop.fields.from.key", FLAG, False, _LOW, "Whether they are left out of the key, too.")
        .define("drop.fields.keep.schema.compatible", FLAG, True, _LOW,
             "Whether only fields that are optional are left out.")
        .define(*_NULLS),
        _new_record_state,
        sided=False,
        package=_DEBEZIUM,
    ),
    TransformPlugin(
        "HeaderFrom",
        "Move or copy fields of the key or value into headers.",
        ConfigDef()
        .define("fields", _NAMES, REQUIRED, _HIGH, "The names of the fields.")
        .define("headers", _NAMES, REQUIRED, _HIGH, "The names of the headers, in the fields' order.")
        .define("operation", names("move", "copy"), REQUIRED, _HIGH, "move or copy.")
        .define(*_NULLS),
        _header_from,
    ),
    TransformPlugin(
        "HoistField",
        "Wrap the key or value into a struct, or without schema into a map, with one field.",
        ConfigDef().define("field", TEXT, REQUIRED, _MEDIUM, "The name of the field."),
        lambda side, values: HoistField(side, values["field"]),
    ),
    TransformPlugin(
        "InsertField",
        "Insert fields with the record's topic, partition, offset or timestamp, or a fixed text.",
        ConfigDef()
        .define("topic.field", TEXT, None, _MEDIUM, f"The field for the topic. {_OPTIONAL}")
        .define("partition.field", TEXT, None, _MEDIUM, f"The field for the partition. {_OPTIONAL}")
        .define("offset.field", TEXT, None, _MEDIUM, f"The field for the offset, of sinks only. {_OPTIONAL}")
        .define("timestamp.field", TEXT, None, _MEDIUM, f"The field for the timestamp. {_OPTIONAL}")
        .define("static.field", TEXT, None, _MEDIUM, f"The field for static.value. {_OPTIONAL}")
        .define("static.value", TEXT, None, _MEDIUM, "The fixed text.")
        .define(*_NULLS),
        _insert_field,
    ),
    TransformPlugin(
        "InsertHeader",
        "Append a header with a fixed value, of the narrowest type that the text is of.",
        ConfigDef()
        .define("header", TEXT, REQUIRED, _HIGH, "The name of the header.")
        .define("value.literal", TEXT, REQUIRED, _HIGH, "The value."),
        lambda _, values: InsertHeader(values["header"], *parsed_literal(values["value.literal"])),
        sided=False,
    ),
    TransformPlugin(
        "MaskField",
        "Mask fields with the null of their type (0, false, empty), or with a replacement.",
        ConfigDef()
        .define("fields", _NAMES, REQUIRED, _HIGH, "The names of the fields.")
        .define("replacement", FILLED, None, _LOW, "What numbers and texts become.")
        .define(*_NULLS),
        lambda side, values: MaskField(side, values["fields"], values["replacement"],
                                       replace_null=values[_REPLACE_NULL]),
    ),
    TransformPlugin(
        "RegexRouter",
        "Rename topics that an expression matches as a whole.",
        ConfigDef()
        .define("regex", read_as(java_pattern), REQUIRED, _HIGH, "The expression.")
        .define("replacement", TEXT, REQUIRED, _HIGH, "The replacement, with $1 for groups."),
        _regex_router,
        sided=False,
    ),
    TransformPlugin(
        "ReplaceField",
        "Leave out or rename fields.",
        ConfigDef()
        .define("exclude", TEXTS, [], _MEDIUM, "Fields to leave out; wins over include.")
        .define("include", TEXTS, [], _MEDIUM, "The only fields to keep; all when empty.")
        .define("renames", Checked(TEXTS, _renames), [], _MEDIUM, "old:new pairs.")
        .define(*_NULLS),
        lambda side, values: ReplaceField(side, values["exclude"], values["include"], _renames(values["renames"]),
                                          replace_null=values[_REPLACE_NULL]),
    ),
    TransformPlugin(
        "SetSchemaMetadata",
        "Set the name or version of the key's or value's schema.",
        ConfigDef()
        .define("schema.name", TEXT, None, _HIGH, "The name to set.")
        .define("schema.version", int_of(), None, _HIGH, "The version to set.")
        .define(*_NULLS),
        _set_schema_metadata,
    ),
    TransformPlugin(
        "TimestampConverter",
        "Convert timestamps between Unix numbers, texts, and Connect's Date, Time and Timestamp.",
        ConfigDef()
        .define("field", TEXT, "", _HIGH, "The field with the timestamp, empty for the whole value.")
        .define("target.type", names(*TARGETS), REQUIRED, _HIGH, "string, unix, Date, Time or Timestamp.")
        .define("format", read_as(DatePattern), "", _MEDIUM, "A pattern of SimpleDateFormat, for texts.")
        .define("unix.precision", names(*PRECISIONS), "milliseconds", _LOW, "What Unix numbers count.")
        .define(*_NULLS),
        _timestamp_converter,
    ),
    TransformPlugin(
        "TimestampRouter",
        "Name topics by the record's topic and timestamp.",
        ConfigDef()
        .define("topic.format", TEXT, "${topic}-${timestamp}", _HIGH, "The topic, with ${topic} and ${timestamp}.")
        .define("timestamp.format", read_as(DatePattern), "yyyyMMdd", _HIGH, "A pattern of SimpleDateFormat."),
        lambda _, values: TimestampRouter(values["topic.format"], DatePattern(values["timestamp.format"])),
        sided=False,
    ),
    TransformPlugin(
        "ValueToKey",
        "Replace the key by fields of the value.",
        ConfigDef().define("fields", _NAMES, REQUIRED, _HIGH, "The names of the fields.").define(*_NULLS),
        lambda _, values: ValueToKey(values["fields"], replace_null=values[_REPLACE_NULL]),
        sided=False,
    ),
)  # fmt: skip
_PREDICATES: Final = (
    PredicatePlugin(
        "TopicNameMatches",
        "Records of topics whose whole name an expression matches.",
        ConfigDef().define("pattern", read_as(java_pattern, FILLED), REQUIRED, _MEDIUM, "The expression."),
        lambda values: TopicNameMatches(java_pattern(values["pattern"])),
    ),
    PredicatePlugin(
        "HasHeaderKey",
        "Records with at least one header of a name.",
        ConfigDef().define("name", FILLED, REQUIRED, _MEDIUM, "The header's name."),
        lambda values: HasHeaderKey(values["name"]),
    ),
    PredicatePlugin("RecordIsTombstone", "Records whose value is null.", ConfigDef(), lambda _: RecordIsTombstone()),
)
# By what a configuration may say: Java's class, and the name without its package.
TRANSFORMATIONS: Final[Mapping[str, tuple[TransformPlugin, RecordSide]]] = {
    prefix + name: (plugin, side)
    for plugin in _CLASSES
    for name, side in plugin.classes.items()
    for prefix in (plugin.package, "")
}
PREDICATES: Final[Mapping[str, PredicatePlugin]] = {
    prefix + plugin.name: plugin for plugin in _PREDICATES for prefix in (f"{_PACKAGE}predicates.", "")
}
