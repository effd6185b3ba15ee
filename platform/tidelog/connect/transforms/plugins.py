"""Transformations and predicates by Connect's names: their configuration keys, and what makes each of its values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tidelog.connect.config.definition import REQUIRED, ConfigDef, Importance, Validator
from tidelog.connect.config.validators import all_of, non_empty, one_of, read_by
from tidelog.connect.config.values import ConfigKind, ConnectConfigError, invalid_value
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

_PACKAGE: Final = "org.apache.kafka.connect.transforms."
_DEBEZIUM: Final = "io.debezium.transforms."
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_TEXT, _LIST, _BOOLEAN, _INT = ConfigKind.STRING, ConfigKind.LIST, ConfigKind.BOOLEAN, ConfigKind.INT
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


@dataclass
class _Lines:
    """A definition of keys, made line by line."""

    definition: ConfigDef = field(default_factory=ConfigDef)

    def key(
        self,
        name: str,
        kind: ConfigKind,
        default: Any,
        importance: Importance,
        text: str,
        rule: Validator | None = None,
    ) -> "_Lines":
        self.definition.define(name, kind, default, importance, text, validator=rule)
        return self

    def replace_null(self) -> ConfigDef:
        self.key(
            _REPLACE_NULL, _BOOLEAN, True, _MEDIUM,
            "Whether a field that is null becomes the default of its schema, where it has one.",
        )  # fmt: skip
        return self.definition


def non_empty_list(name: str, value: Any) -> None:
    """A list with at least one entry (Kafka's `NonEmptyListValidator`)."""
    if not value:
        raise invalid_value(name, value, "Empty list")


def _non_empty_text(name: str, value: Any) -> None:
    if not value:
        raise invalid_value(name, value or "", "String must be non-empty")


def _given(name: str, value: Any) -> None:
    if value is None:
        raise invalid_value(name, value, "entry must be non null")


def _renames(mappings: Sequence[str]) -> dict[str, str]:
    parts = [mapping.split(":") for mapping in mappings]
    for mapping, part in zip(mappings, parts, strict=True):
        if len(part) != 2 or not all(part):
            raise invalid_value("renames", ",".join(mappings), f"Invalid rename mapping: {mapping}")
    return {old: new for old, new in parts}  # noqa: C416


def _check_renames(_: str, value: Any) -> None:
    _renames(value)


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


def _check_casts(_: str, value: Any) -> None:
    _casts(value)


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


def _check_envelope_fields(name: str, value: Any) -> None:
    try:
        _envelope_fields(value, "")
    except ValueError as error:
        raise invalid_value(name, ",".join(value), str(error)) from None


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


_OPTIONAL: Final = "Suffix with ! to make this a required field, or ? to keep it optional (the default)."
_CLASSES: Final = (
    TransformPlugin(
        "Cast",
        "Cast fields, or the whole key or value, to a type. Binary values can be cast to string (base64) only.",
        _Lines()
        .key("spec", _LIST, REQUIRED, _HIGH, "field:type pairs, or one type for the whole value: int8, int16, int32, "
             "int64, float32, float64, boolean, string.", _check_casts)
        .replace_null(),
        _cast,
    ),
    TransformPlugin(
        "DropHeaders",
        "Remove headers by their names.",
        _Lines().key("headers", _LIST, REQUIRED, _HIGH, "The names of headers to remove.", non_empty_list).definition,
        lambda _, values: DropHeaders(values["headers"]),
        sided=False,
    ),
    TransformPlugin(
        "ExtractField",
        "Replace the key or value by one of its fields; null stays null.",
        _Lines()
        .key("field", _TEXT, REQUIRED, _MEDIUM, "The field's name, or with field.syntax.version=V2 its path.")
        .key("field.syntax.version", _TEXT, V1, _HIGH, "V1: a name. V2: a path, with steps between dots, and backticks "
             "around steps that have dots.", one_of(V1, V2, any_case=True))
        .replace_null(),
        _extract_field,
    ),
    TransformPlugin("Filter", "Drop all records; a predicate says which it gets.", ConfigDef(),
                    lambda _, __: Filter(), sided=False),
    TransformPlugin(
        "Flatten",
        "Make one level of nested structs or maps; lists stay as they are.",
        _Lines().key("delimiter", _TEXT, ".", _MEDIUM, "What joins the names of the levels.").definition,
        lambda side, values: Flatten(side, values["delimiter"]),
    ),
    TransformPlugin(
        "ExtractNewRecordState",
        "Replace Debezium's envelope of a change by the row after it.",
        _Lines()
        .key("delete.tombstone.handling.mode", _TEXT, "", _MEDIUM,
             f"What becomes of deletes and tombstones: {', '.join(MODES)}; tombstone unless given.",
             one_of("", *MODES, any_case=True))
        .key("drop.tombstones", _BOOLEAN, None, _LOW, "Older: whether tombstones are dropped, true unless given.")
        .key("delete.handling.mode", _TEXT, "", _LOW, "Older: drop, rewrite or none, drop unless given.",
             one_of("", "drop", "rewrite", "none", any_case=True))
        .key("add.fields", _LIST, [], _LOW, "Fields of the envelope to add to the row, also as block.field:name.",
             _check_envelope_fields)
        .key("add.fields.prefix", _TEXT, "__", _LOW, "What their names begin with.")
        .key("add.headers", _LIST, [], _LOW, "Fields of the envelope to add as headers.", _check_envelope_fields)
        .key("add.headers.prefix", _TEXT, "__", _LOW, "What the headers' names begin with.")
        .key("route.by.field", _TEXT, None, _LOW, "The row's field that names the topic.")
        .key("drop.fields.header.name", _TEXT, None, _LOW, "The header that lists fields to leave out of the row.")
        .key("drop.fields.from.key", _BOOLEAN, False, _LOW, "Whether they are left out of the key, too.")
        .key("drop.fields.keep.schema.compatible", _BOOLEAN, True, _LOW,
             "Whether only fields that are optional are left out.")
        .replace_null(),
        _new_record_state,
        sided=False,
        package=_DEBEZIUM,
    ),
    TransformPlugin(
        "HeaderFrom",
        "Move or copy fields of the key or value into headers.",
        _Lines()
        .key("fields", _LIST, REQUIRED, _HIGH, "The names of the fields.", non_empty_list)
        .key("headers", _LIST, REQUIRED, _HIGH, "The names of the headers, in the fields' order.", non_empty_list)
        .key("operation", _TEXT, REQUIRED, _HIGH, "move or copy.", one_of("move", "copy"))
        .replace_null(),
        _header_from,
    ),
    TransformPlugin(
        "HoistField",
        "Wrap the key or value into a struct, or without schema into a map, with one field.",
        _Lines().key("field", _TEXT, REQUIRED, _MEDIUM, "The name of the field.").definition,
        lambda side, values: HoistField(side, values["field"]),
    ),
    TransformPlugin(
        "InsertField",
        "Insert fields with the record's topic, partition, offset or timestamp, or a fixed text.",
        _Lines()
        .key("topic.field", _TEXT, None, _MEDIUM, f"The field for the topic. {_OPTIONAL}")
        .key("partition.field", _TEXT, None, _MEDIUM, f"The field for the partition. {_OPTIONAL}")
        .key("offset.field", _TEXT, None, _MEDIUM, f"The field for the offset, of sinks only. {_OPTIONAL}")
        .key("timestamp.field", _TEXT, None, _MEDIUM, f"The field for the timestamp. {_OPTIONAL}")
        .key("static.field", _TEXT, None, _MEDIUM, f"The field for static.value. {_OPTIONAL}")
        .key("static.value", _TEXT, None, _MEDIUM, "The fixed text.")
        .replace_null(),
        _insert_field,
    ),
    TransformPlugin(
        "InsertHeader",
        "Append a header with a fixed value, of the narrowest type that the text is of.",
        _Lines()
        .key("header", _TEXT, REQUIRED, _HIGH, "The name of the header.", _given)
        .key("value.literal", _TEXT, REQUIRED, _HIGH, "The value.", _given)
        .definition,
        lambda _, values: InsertHeader(values["header"], *parsed_literal(values["value.literal"])),
        sided=False,
    ),
    TransformPlugin(
        "MaskField",
        "Mask fields with the null of their type (0, false, empty), or with a replacement.",
        _Lines()
        .key("fields", _LIST, REQUIRED, _HIGH, "The names of the fields.", non_empty_list)
        .key("replacement", _TEXT, None, _LOW, "What numbers and texts become.", non_empty)
        .replace_null(),
        lambda side, values: MaskField(side, values["fields"], values["replacement"],
                                       replace_null=values[_REPLACE_NULL]),
    ),
    TransformPlugin(
        "RegexRouter",
        "Rename topics that an expression matches as a whole.",
        _Lines()
        .key("regex", _TEXT, REQUIRED, _HIGH, "The expression.", read_by(java_pattern))
        .key("replacement", _TEXT, REQUIRED, _HIGH, "The replacement, with $1 for groups.")
        .definition,
        _regex_router,
        sided=False,
    ),
    TransformPlugin(
        "ReplaceField",
        "Leave out or rename fields.",
        _Lines()
        .key("exclude", _LIST, [], _MEDIUM, "Fields to leave out; wins over include.")
        .key("include", _LIST, [], _MEDIUM, "The only fields to keep; all when empty.")
        .key("renames", _LIST, [], _MEDIUM, "old:new pairs.", _check_renames)
        .replace_null(),
        lambda side, values: ReplaceField(side, values["exclude"], values["include"], _renames(values["renames"]),
                                          replace_null=values[_REPLACE_NULL]),
    ),
    TransformPlugin(
        "SetSchemaMetadata",
        "Set the name or version of the key's or value's schema.",
        _Lines()
        .key("schema.name", _TEXT, None, _HIGH, "The name to set.")
        .key("schema.version", _INT, None, _HIGH, "The version to set.")
        .replace_null(),
        _set_schema_metadata,
    ),
    TransformPlugin(
        "TimestampConverter",
        "Convert timestamps between Unix numbers, texts, and Connect's Date, Time and Timestamp.",
        _Lines()
        .key("field", _TEXT, "", _HIGH, "The field with the timestamp, empty for the whole value.")
        .key("target.type", _TEXT, REQUIRED, _HIGH, "string, unix, Date, Time or Timestamp.", one_of(*TARGETS))
        .key("format", _TEXT, "", _MEDIUM, "A pattern of SimpleDateFormat, for texts.", read_by(DatePattern))
        .key("unix.precision", _TEXT, "milliseconds", _LOW, "What Unix numbers count.", one_of(*PRECISIONS))
        .replace_null(),
        _timestamp_converter,
    ),
    TransformPlugin(
        "TimestampRouter",
        "Name topics by the record's topic and timestamp.",
        _Lines()
        .key("topic.format", _TEXT, "${topic}-${timestamp}", _HIGH, "The topic, with ${topic} and ${timestamp}.")
        .key("timestamp.format", _TEXT, "yyyyMMdd", _HIGH, "A pattern of SimpleDateFormat.", read_by(DatePattern))
        .definition,
        lambda _, values: TimestampRouter(values["topic.format"], DatePattern(values["timestamp.format"])),
        sided=False,
    ),
    TransformPlugin(
        "ValueToKey",
        "Replace the key by fields of the value.",
        _Lines().key("fields", _LIST, REQUIRED, _HIGH, "The names of the fields.", non_empty_list).replace_null(),
        lambda _, values: ValueToKey(values["fields"], replace_null=values[_REPLACE_NULL]),
        sided=False,
    ),
)  # fmt: skip
_PREDICATES: Final = (
    PredicatePlugin(
        "TopicNameMatches",
        "Records of topics whose whole name an expression matches.",
        _Lines()
        .key("pattern", _TEXT, REQUIRED, _MEDIUM, "The expression.", all_of(_non_empty_text, read_by(java_pattern)))
        .definition,
        lambda values: TopicNameMatches(java_pattern(values["pattern"])),
    ),
    PredicatePlugin(
        "HasHeaderKey",
        "Records with at least one header of a name.",
        _Lines().key("name", _TEXT, REQUIRED, _MEDIUM, "The header's name.", _non_empty_text).definition,
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
