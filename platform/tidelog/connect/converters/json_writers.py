"""Writers of JSON that are made for a schema once: as `to_json`, without a look at the schema for each value.

What is not of the usual Python class, or is null or out of range, is left to `to_json`, and so are all refusals.
"""

import sys
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple

import orjson

from tidelog.connect.converters.json_values import json_bytes, to_json, unscaled
from tidelog.connect.data.packed import Constant, Parts, StructLayout, field_getter
from tidelog.connect.data.schema import DECIMAL, LOGICAL_NAMES, SCALE, ConnectSchema, SchemaType

JsonWriter = Callable[[Any], Any]

_MOST: Final = sys.float_info.max
# How many combinations of classes a struct's writer knows: each null makes another one.
_PLANS: Final = 1000
# The usual class of a type's values and their range.
_RANGES: Final[dict[SchemaType, tuple[type, Any, Any]]] = {
    **{
        kind: (int, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        for kind, bits in (
            (SchemaType.INT8, 8),
            (SchemaType.INT16, 16),
            (SchemaType.INT32, 32),
            (SchemaType.INT64, 64),
        )
    },
    SchemaType.FLOAT32: (float, -_MOST, _MOST),
    SchemaType.FLOAT64: (float, -_MOST, _MOST),
}
_CLASSES: Final[dict[SchemaType, type]] = {SchemaType.STRING: str, SchemaType.BOOLEAN: bool}
# Types whose values are JSON's own; floats are not, which may be infinite.
_READY: Final = frozenset(
    {SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64, SchemaType.STRING, SchemaType.BOOLEAN}
)


def json_writer(schema: ConnectSchema, *, numeric: bool = False) -> JsonWriter:
    """The writer of a schema's values. `numeric`: as for `to_json`. It raises `DataError`."""
    generic: JsonWriter = partial(to_json, schema, numeric=numeric)
    nulls = schema.optional and schema.default is None
    if schema.type is SchemaType.STRUCT:
        return _struct(schema, generic, nulls=nulls, numeric=numeric)
    if schema.name == DECIMAL and not numeric:
        return _decimal(int(schema.parameters.get(SCALE, "0")), generic, nulls=nulls)
    if schema.name in LOGICAL_NAMES:
        return generic
    if schema.type in _RANGES:
        return _ranged(*_RANGES[schema.type], generic, nulls=nulls)
    return _plain(_CLASSES[schema.type], generic, nulls=nulls) if schema.type in _CLASSES else generic


def packed_writer(
    layout: StructLayout, *, numeric: bool = False, around: tuple[bytes, bytes] = (b"", b"")
) -> Callable[[Parts], bytes]:
    """What writes the JSON of a layout's structs by their parts; its values are those of `json_writer`.

    All that is constant is text with a hole for each part, made here once. `around`: what is before and after it. The
    writer raises `DataError`.
    """
    holes: list[tuple[int, ConnectSchema]] = []
    text = _literal(around[0]) + _text_of(layout, numeric, holes) + _literal(around[1])
    in_order = field_getter([number for number, _ in holes])
    called = [
        (place, json_writer(schema, numeric=numeric)) for place, (_, schema) in enumerate(holes) if not _ready(schema)
    ]

    def write(parts: Parts) -> bytes:
        written = list(in_order(parts))
        for place, field in called:
            written[place] = field(written[place])
        try:
            return text % tuple(map(orjson.dumps, written))
        except (TypeError, RecursionError):
            return text % tuple(map(json_bytes, written))  # which says what has no form

    return write


def _text_of(layout: StructLayout, numeric: bool, holes: list[tuple[int, ConnectSchema]]) -> bytes:
    """A layout's JSON with `%b` for each part; `holes` gets the parts' numbers and schemas, in order."""
    members = []
    for name, place in layout.fields.items():
        schema = layout.schemas[name]
        if isinstance(place, StructLayout):
            text = _text_of(place, numeric, holes)
        elif isinstance(place, Constant):
            text = _literal(json_bytes(json_writer(schema, numeric=numeric)(place.value)))
        else:
            holes.append((place, schema))
            text = b"%b"
        members.append(_literal(json_bytes(name)) + b":" + text)
    return b"{" + b",".join(members) + b"}"


def _literal(text: bytes) -> bytes:
    return text.replace(b"%", b"%%")


def _ready(schema: ConnectSchema) -> bool:
    """Whether JSON has each value of a schema as it is: null is one, where no default stands for it."""
    return schema.default is None and schema.name not in LOGICAL_NAMES and schema.type in _READY


def schema_fragment(schema: dict[str, Any]) -> orjson.Fragment:
    """A schema's JSON, to be put into each record's."""
    return orjson.Fragment(orjson.dumps(schema))


def _struct(schema: ConnectSchema, generic: JsonWriter, *, nulls: bool, numeric: bool) -> JsonWriter:
    fields = [(one.name, _as_is(one.schema), json_writer(one.schema, numeric=numeric)) for one in schema.fields]
    names = frozenset(one.name for one in schema.fields)
    order = tuple(one.name for one in schema.fields)
    plans: dict[tuple[type, ...], _StructPlan] = {}

    def write_any(value: Any) -> Any:
        if value.__class__ is dict and value.keys() <= names:
            get = value.get
            # Fields of one class, which are most, are written as they are without a call.
            return {
                name: found if (found := get(name)).__class__ is kind else field(found) for name, kind, field in fields
            }
        return None if value is None and nulls else generic(value)

    def write(value: Any) -> Any:
        if value.__class__ is not dict or tuple(value) != order:
            return write_any(value)
        classes = tuple(map(type, value.values()))
        plan = plans.get(classes)
        if plan is None:
            if len(plans) >= _PLANS:
                plans.clear()
            plan = plans[classes] = _plan(schema, classes, [field for _, _, field in fields])
        for name, low, high in plan.ranged:
            if not low <= value[name] <= high:
                return write_any(value)
        if not plan.called:
            return value
        written = value.copy()
        for name, field in plan.called:
            written[name] = field(value[name])
        return written

    return write


class _StructPlan(NamedTuple):
    """What is to be done for a struct whose fields have certain classes, and are all there in order.

    `ranged`: (name, least, most) of numbers that are written as they are within these; `called`: (name, writer).
    """

    ranged: tuple[tuple[str, Any, Any], ...]
    called: tuple[tuple[str, JsonWriter], ...]


def _plan(schema: ConnectSchema, classes: Sequence[type], writers: Sequence[JsonWriter]) -> _StructPlan:
    ranged, called = [], []
    for field, kind, writer in zip(schema.fields, classes, writers, strict=True):
        inner = field.schema
        wanted, low, high = (None, None, None) if inner.name in LOGICAL_NAMES else _RANGES.get(inner.type, (None,) * 3)
        if kind is wanted:
            ranged.append((field.name, low, high))
        elif kind is not _as_is(inner) and not (kind is type(None) and inner.optional and inner.default is None):
            called.append((field.name, writer))
    return _StructPlan(tuple(ranged), tuple(called))


def _as_is(schema: ConnectSchema) -> type | None:
    """The class of which every value is written as it is, where there is one."""
    return None if schema.name in LOGICAL_NAMES else _CLASSES.get(schema.type)


def _decimal(scale: int, generic: JsonWriter, *, nulls: bool) -> JsonWriter:
    def write(value: Any) -> Any:
        if value.__class__ is Decimal:
            return b2a_base64(unscaled(value, scale), newline=False).decode("ascii")
        return None if value is None and nulls else generic(value)

    return write


def _ranged(kind: type, low: Any, high: Any, generic: JsonWriter, *, nulls: bool) -> JsonWriter:
    def write(value: Any) -> Any:
        if value.__class__ is kind and low <= value <= high:
            return value
        return None if value is None and nulls else generic(value)

    return write


def _plain(kind: type, generic: JsonWriter, *, nulls: bool) -> JsonWriter:
    def write(value: Any) -> Any:
        if value.__class__ is kind:
            return value
        return None if value is None and nulls else generic(value)

    return write
